"""The host side of TileLang's surface."""
