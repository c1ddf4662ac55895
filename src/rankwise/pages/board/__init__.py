"""The page of a leaderboard."""
