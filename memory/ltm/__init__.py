"""LTM: the memories of characters, as the LTM extension for text-generation-webui keeps and recalls them.

Read `memories` first, then `config` and `prompt`; `extension_files` and `migration` bring over what the extension has.
"""
