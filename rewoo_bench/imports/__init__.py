"""Trajectories that other programs recorded -> a run's folder, which every reading command takes."""
