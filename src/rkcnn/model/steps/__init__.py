"""The families of networks, one file each: what a period computes."""
