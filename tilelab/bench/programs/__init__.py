"""Programs that both tilelab and a peer compile from the same text."""
