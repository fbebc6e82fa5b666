"""What a notebook shows."""
import html


def text(plain: str) -> str:
    return f'<pre style="line-height: 1.25">{html.escape(plain)}</pre>'


def details(title: str, body: str, is_open: bool = False) -> str:
    return f'<details{" open" if is_open else ""}><summary>{html.escape(title)}</summary>{body}</details>'
