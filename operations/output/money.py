"""Amounts of money as people read them."""


def money(usd: float) -> str:
    """US dollars, with cents where they matter."""
    return f"${usd:,.0f}" if usd >= 1000 else f"${usd:,.2f}" if usd >= 0.1 or not usd else f"${usd:.4g}"
