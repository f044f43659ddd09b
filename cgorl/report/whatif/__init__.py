"""What if: an optimization with another rewrite at some step, and how it goes on from there."""
