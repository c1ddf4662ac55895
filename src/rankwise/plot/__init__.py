"""Pictures of rankers, in the style of scikit-learn's displays."""
