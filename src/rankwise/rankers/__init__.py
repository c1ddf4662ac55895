"""Estimators: the models, in scikit-learn's interface; `import rankwise` offers them by name."""
