"""What secrets look like."""

import os
import re

KINDS = [
    ("an AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
    ("a GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{40,}\b"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}\b"),
    ("a Slack token", r"\bxox[abpors]-[A-Za-z0-9-]{10,}\b"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("a Stripe key", r"\b[rs]k_live_[0-9A-Za-z]{20,}\b"),
    ("an API key of a model provider", r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}\b"),
    ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
]
PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in KINDS]


def texts(value):
    """Every text in a value, with the way to it."""
    if isinstance(value, str):
        yield "", value
    elif isinstance(value, dict):
        for key, inner in value.items():
            for way, text in texts(inner):
                yield f".{key}{way}", text
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for way, text in texts(inner):
                yield f"[{index}]{way}", text


def find(value):
    """What the first secret in a value is, and where; the secret itself is never repeated."""
    allowed = os.environ.get("EXTENSION_SECRETS_GUARD_ALLOW")
    allowed = re.compile(allowed) if allowed else None
    for way, text in texts(value):
        for kind, pattern in PATTERNS:
            for match in pattern.finditer(text):
                if not (allowed and allowed.search(match.group())):
                    return kind, way.lstrip(".") or "the text"
    return None
