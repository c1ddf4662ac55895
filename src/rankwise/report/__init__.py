"""One self-contained page that shows how well a ranker orders a data set."""
