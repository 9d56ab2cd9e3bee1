# expects: RAISED - - 03
"""An entry that lies about where it is defined, and of what kind it is."""


class Entry:
    class __code__:
        co_filename = "solution.py"
        co_firstlineno = -(10**30)

    mode = "eager"
    __name__ = "vector_add" * 10_000

    def __call__(self, **sizes):
        raise ValueError(sizes)


vector_add = Entry()
