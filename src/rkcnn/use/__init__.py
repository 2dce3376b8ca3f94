"""What people do with the package from Python: train, load and evaluate networks. `import rkcnn` offers all of it."""
