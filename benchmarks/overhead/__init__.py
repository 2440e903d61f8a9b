"""What capture costs an application, beside a minimal handler and the peers, in one interleaved run.

Every candidate runs in a process of its own, peers in an environment of their own. In each round every process
takes its turn at every scenario, in a shuffled order, so that a noisy machine hits all alike. What a candidate
adds is the median over rounds of its turn less the bare application's turn of the same round.
"""
