"""Random operands, attributes and shapes for the operators of a rule's source."""
