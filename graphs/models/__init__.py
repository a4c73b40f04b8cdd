"""Chat models: made by name, asked one question at a time, their errors explained in one line.

- `chat_models`: `chat_model(settings)` for a run, `load_chat_model(name)`, `bind_tools`. Read this first.
- `answer`: `ask`, which every node uses to get one whole answer, and `Guard`, which judges it while it comes.
- `text_calls`: calls of tools that a model wrote as text.
- `providers`: names, keys and errors of providers, and what to do about each; it imports none of them.
- `openai_client`: the HTTP client for OpenAI-compatible servers.
"""
