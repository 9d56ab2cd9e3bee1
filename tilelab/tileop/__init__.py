"""Options of tile operations by TileLang's path (`tilelang.tileop`)."""
