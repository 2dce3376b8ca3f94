"""Trains whole tables: on the devices of this machine, or as tasks on a Ray cluster; estimates how long that takes."""
