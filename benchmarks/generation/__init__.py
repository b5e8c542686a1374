"""What generating costs and yields, end to end, with a real model."""
