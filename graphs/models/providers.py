"""Providers of chat models: which environment variable holds whose key, and how no key gets out."""

from __future__ import annotations

import os
import re

OFFLINE = "offline"
"""Name of the built-in storyteller, which needs neither model nor key."""

KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure_openai": "AZURE_OPENAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "nvidia": "NVIDIA_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "perplexity": "PPLX_API_KEY",
    "together": "TOGETHER_API_KEY",
    "upstage": "UPSTAGE_API_KEY",
    "xai": "XAI_API_KEY",
}
"""Environment variable of each provider's key; a provider that is missing here still works, with vaguer messages."""

BASE_URL_VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
"""Where an OpenAI-compatible server is named, in the order in which langchain_openai reads them."""

PLAY_OFFLINE = "leave out --model and QUESTBOOK_MODEL to play offline"

_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|gsk|xai|pplx|nvapi|AIza)[-_]?[A-Za-z0-9*_\-]{8,}|(?<=Bearer )[^\s'\"]+")


def split_name(name: str) -> tuple[str, str]:
    """Split `provider:model` into both; the provider is "" when the name has none.

    Providers are lower case with underscores, as `init_chat_model` spells them. Only the first colon splits, since
    Ollama's model names have one of their own (`ollama:llama3.1:8b`).
    """
    provider, colon, model = name.strip().partition(":")
    if not colon:
        return "", provider
    return provider.strip().lower().replace("-", "_"), model.strip()


def key_variable(name: str) -> str:
    """Name the environment variable with the key for the model `name`; "" when we do not know it."""
    return KEY_VARIABLES.get(split_name(name)[0], "")


def base_url() -> tuple[str, str]:
    """Find the OpenAI-compatible server that the environment names.

    Returns:
        The variable's name and its value, both "" when there is none.
    """
    for variable in BASE_URL_VARIABLES:
        if value := os.environ.get(variable, "").strip():
            return variable, value
    return "", ""


def redact(text: str) -> str:
    """Return `text` without any key: neither those in the environment nor what looks like one."""
    for variable in KEY_VARIABLES.values():
        # Keys shorter than this are placeholders of local servers, and words of the text may contain them.
        if len(key := os.environ.get(variable, "").strip()) >= 8:
            text = text.replace(key, "[key]")
    return _LOOKS_LIKE_A_KEY.sub("[key]", text)
