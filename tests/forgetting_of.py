"""`Forgetting` for the campaign of a compiled graph."""

from questbook.graphs.forgetting.forget import Forgetting


def forgetting_of(graph, config, context):
    threads = [config["configurable"]["thread_id"]]
    return Forgetting(graph.store, graph.checkpointer, context.user, context.campaign, threads)
