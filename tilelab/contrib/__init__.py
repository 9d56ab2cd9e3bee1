"""Compiler helpers by TileLang's path (`tilelang.contrib`)."""
