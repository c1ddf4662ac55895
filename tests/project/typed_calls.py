"""Calls that a type checker must refuse: an ignore that mypy does not need is an error."""

from rankwise import ConditionalRankRLS, RankRLS, RankRLSCV, RankSVM


def calls() -> None:
    RankRLS(alpa=1)  # type: ignore[call-arg]
    RankRLS(alpha="1")  # type: ignore[arg-type]
    RankRLSCV(alpa=1)  # type: ignore[call-arg]
    RankSVM(alpa=1)  # type: ignore[call-arg]
    ConditionalRankRLS(alpa=1)  # type: ignore[call-arg]
    RankRLS(alpha=1.0).set_params(alpha=2.0).fit([[1.0]], [1.0]).predict([[1.0]])
