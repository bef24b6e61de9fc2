"""SGLang plugin of the cpu-reference runtime."""


def register() -> None:
    """Says the processor has AMX, once for every reader.

    SGLang would otherwise drop the `intel_amx` attention backend, the only one on a CPU that serves speculation; the
    ops it calls come from this overlay and need no AMX. The modules that would call *compiled* AMX ops decided while
    they were imported, before plugins run, and stay on plain PyTorch.
    """
    # Imported late: the interpreter looks plugins up before SGLang is whole.
    from sglang.srt.runtime_context import override_platform

    override_platform(has_amx=True).install()
