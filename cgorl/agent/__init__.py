"""The agent that learns to rewrite: encoder, policy, curiosity, rollouts and PPO."""
