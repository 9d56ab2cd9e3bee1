"""What the command line and the notebook share: parsing, finding kernels, progress, running."""
