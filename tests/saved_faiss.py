"""A folder as LangChain's own `FAISS.save_local` writes it."""

import warnings

from langchain_core.documents import Document

from questbook import HashEmbeddings


def save(folder, *documents):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.vectorstores import FAISS  # a second, which few tests need
    documents = documents or [Document("The owlbear sleeps in the mill.")]
    FAISS.from_documents(list(documents), HashEmbeddings()).save_local(str(folder))
