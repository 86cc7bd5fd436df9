"""Amounts of money as people read them."""


def money(usd: float) -> str:
    """US dollars, with cents where they matter."""
    if usd >= 1000:
        return f"${usd:,.0f}"
    return f"${usd:,.2f}" if usd >= 0.1 or not usd else f"${usd:.4g}"
