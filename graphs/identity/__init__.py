"""Who asks: tokens of an OpenID Connect issuer, and sessions that such a token begins.

- `identity.Identity`: who it is.
- `tokens.TokenVerifier`: from the headers of a request to an `Identity`, by the issuer's public keys.
- `langgraph_auth.auth`: the same as LangGraph's `Auth`, which `langgraph.json` names; the rules that keep users apart.
- `sessions`: sessions of a browser, shared by processes.
"""
