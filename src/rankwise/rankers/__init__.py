"""Rankers with the interface of scikit-learn estimators; import them from `rankwise`."""
