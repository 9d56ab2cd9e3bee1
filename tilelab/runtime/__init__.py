"""Run time: NVRTC, the driver, TMA descriptors, the kernel cache, launching and checks."""
