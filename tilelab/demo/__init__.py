"""`tilelab demo`: one GEMM from Python to a checked result, and a page that shows the way."""
