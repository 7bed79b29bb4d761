"""A Ray cluster of a head and some nodes on this machine: prints its address; each line that it reads kills a node.

    python ray_nodes.py 2

A process of its own, since Ray changes the process that it is started in.
"""

from __future__ import annotations

import os
import sys

# A killed node is noticed in about two seconds, not in half a minute; one that is only slow stays.
os.environ |= {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "10000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def main() -> None:
    from ray.cluster_utils import Cluster

    size = {"object_store_memory": 100_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**size, "num_cpus": 0})
    nodes = [cluster.add_node(wait=True, num_cpus=2, object_store_memory=100_000_000) for _ in range(int(sys.argv[1]))]
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("done", flush=True)
    cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
