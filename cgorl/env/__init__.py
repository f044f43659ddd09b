"""Graph rewriting as an environment: an episode rewrites one graph, an action is one of its matches or to stop."""
