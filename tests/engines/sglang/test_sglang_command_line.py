"""A pasted launch command is read as a shell and SGLang's own parser read it, and never raises anything else."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.engines.sglang.launch_line.command_line import LaunchLine, read_launch
from spectune.engines.sglang.options import Option, Options
from spectune.errors import SpectuneError

OPTIONS = Options.shipped()
MODEL = ["--model-path", "m"]


def rules(line: LaunchLine) -> list[str]:
    return [finding.rule for finding in line.findings]


def only(line: LaunchLine, rule: str) -> Any:
    (found,) = [finding for finding in line.findings if finding.rule == rule]
    return found


@pytest.mark.parametrize(
    "command",
    [
        "python -m sglang.launch_server --model-path m --tp-size 8",
        "python3.11 -u -msglang.launch_server --model m --tp-size=8",
        "/opt/venv/bin/sglang serve m --tp-size 8",
        "sglang serve --model-type llm --model-path m --tp-size 8",
        "--model-path m --tp-size 8",
        "nohup numactl --membind 0 python -m sglang.launch_server --model 'm' \\\n  --tp-size \"8\" # N\n > log 2>&1 &",
        "cd /srv && exec python -m sglang.launch_server --model-path m --tp-size 8 2>&1 | tee log",
        "MODEL=m; N=8\npython -m sglang.launch_server --model-path $MODEL --tp-size ${N}",
        'ARGS="--tp-size 8"; python -m sglang.launch_server --model-path m $ARGS',
        "docker run --gpus all -v /a:/b lmsysorg/sglang:latest python3 -m sglang.launch_server --model m --tp-size 8",
        "ssh host \"bash -c 'python -m sglang.launch_server --model-path m --tp-size 8'\"",
        "$ sglang serve m --tp-size 8\r\n",
        "#!/bin/bash\nset -e\nif true; then (sglang serve m --tp-size 8) & fi",
        'ARGS=(--model-path m) # N\nARGS+=(\n  --tp-size 8\n)\npython -m sglang.launch_server "${ARGS[@]}"',
        "```bash\nsglang serve m --tp-size 8\n```\n",
        "`sglang serve m --tp-size 8`",
        "sglang serve m --tp-size 8 \\",
        '["sglang", "serve", "m", "--tp-size", 8]',
        'FROM x\nENTRYPOINT ["python3", "-m", "sglang.launch_server"]\nCMD ["--model-path", "m", "--tp-size", "8"]',
        "command:\n  - python3\n  - -m\n  - sglang.launch_server\nargs: [--model-path, m, --tp-size, 8]",
        "spec:\n  containers:\n  - {command: [sleep]}\n  - args: [sglang, serve, m, --tp-size, '8']",
        "- bash\n- -c\n- sglang serve m --tp-size 8",
        "args:\n- --model-path\n- m\n- --tp-size=8",
    ],
)
def test_shell_noise_is_seen_through(command: str) -> None:
    line = read_launch(command)
    assert line.arguments == {"model-path": "m", "tp-size": 8}
    assert not line.findings


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("A=1 B='x y' sglang serve m", {"A": "1", "B": "x y"}),
        ("export A=1 B=2; unset B; C=3; sglang serve m", {"A": "1"}),
        ("A=1 env -u A B=2 nohup sglang serve m", {"B": "2"}),
        ("A=1 env -i B=2 sglang serve m", {"B": "2"}),
        (
            "docker run -e A=1 --env B=2 --env=C=3 -eD=4 -v /x:/y img sglang serve m",
            dict(zip("ABCD", "1234", strict=True)),
        ),
        ("docker run -e A=1 img bash -c 'B=2 sglang serve m'", {"A": "1", "B": "2"}),
        ("CUDA_VISIBLE_DEVICES=0,1 exec sglang serve m", {"CUDA_VISIBLE_DEVICES": "0,1"}),
    ],
)
def test_the_environment_that_reaches_the_engine(command: str, env: dict[str, str]) -> None:
    line = read_launch(command)
    assert line.env == env
    assert line.arguments == {"model-path": "m"}


def test_variables_outside_a_container_do_not_reach_it() -> None:
    line = read_launch("A=1 docker run img sglang serve m")
    assert line.env == {}
    assert line.container
    assert "-e NAME=VALUE" in only(line, "env-outside-container").advice


def test_what_only_a_shell_knows_is_said_and_not_guessed() -> None:
    line = read_launch("A=$(nproc) sglang serve $MODEL --tp-size $TP --port=${P:-$X} --dp-size 2 $MORE --pp-size `x`")
    assert line.arguments == {"dp-size": 2}
    assert line.env == {}
    assert rules(line).count("unknown-value") == 4
    assert "$MORE" in only(line, "unknown-words").message
    assert not line.refused
    assert line.incomplete


@pytest.mark.parametrize(
    "command",
    [
        'ARGS="--model-path m"\nARGS+=" --tp-size 8"\npython -m sglang.launch_server $ARGS',
        'export ARGS="--model-path m"; export ARGS+=" --tp-size 8"\npython -m sglang.launch_server $ARGS',
        "python -m sglang.launch_server --model-path ${MODEL:-m} --tp-size ${TP:-8}",
        'TP=8; python -m sglang.launch_server --model-path "${MODEL:-m}" --tp-size ${TP:-2}',
        "python -m sglang.launch_server --model-path ${MODEL-'m'} --tp-size ${TP:=8}",
    ],
)
def test_variables_that_grow_or_have_defaults(command: str) -> None:
    line = read_launch(command)
    assert line.arguments == {"model-path": "m", "tp-size": 8}
    assert set(rules(line)) <= {"assumed-default"}
    assert not line.incomplete
    assert [finding.severity for finding in line.findings] == ["info"] * len(line.findings)


def test_a_variable_that_grows_by_what_is_not_known_is_not_known() -> None:
    line = read_launch('ARGS="--tp-size 8"; ARGS+=" $MORE"\nsglang serve m $ARGS')
    assert line.incomplete
    assert line.arguments == {"model-path": "m"}


def test_a_systemd_unit() -> None:
    line = read_launch(
        '[Unit]\nDescription=x "y\n[Service]\nEnvironment=NCCL_ALGO=Tree TP=8\nEnvironment="A=b c"\n'
        "ExecStart=-/opt/venv/bin/python -m sglang.launch_server \\\n  --model-path m --tp-size ${TP}\nRestart=always\n"
        "EnvironmentFile=-/etc/default/sglang\n"
    )
    assert line.arguments == {"model-path": "m", "tp-size": 8}
    assert line.env == {"NCCL_ALGO": "Tree", "TP": "8", "A": "b c"}
    assert "the file /etc/default/sglang" in only(line, "unknown-environment").message


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("docker run lmsysorg/sglang:v0.5.9 sglang serve m", "0.5.9"),
        ("docker run registry.local:5000/lmsysorg/sglang:v0.5.10.post1-cu126 sglang serve m", "0.5.10.post1"),
        ("pip install 'sglang[all]==0.5.6'\nsglang serve m", "0.5.6"),
        ("image: lmsysorg/sglang:0.5.8\ncommand: [sglang, serve, m]", "0.5.8"),
        ("docker run lmsysorg/sglang:v0.5.23 sglang serve m", None),
        ("docker run lmsysorg/sglang:latest sglang serve m", None),
        ("sglang serve m --served-model-name sglang", None),
    ],
)
def test_an_older_image_is_judged_by_its_own_version(command: str, version: str | None) -> None:
    line = read_launch(command)
    said = [finding.message for finding in line.findings if finding.rule == "other-version"]
    told = f"options and rules are those of SGLang {version}; defaults no rule speaks of are 0.5.23's"
    assert (line.version, said) == ((version, [told]) if version else ("0.5.23", []))


@pytest.mark.parametrize(
    ("command", "asked", "said"),
    [
        (
            "docker run sglang:v0.4.9 sglang serve m",
            None,
            "this is SGLang 0.4.9, but what is said here is about 0.5.23",
        ),
        (
            "docker run sglang:v0.6.1 sglang serve m",
            None,
            "this is SGLang 0.6.1, but what is said here is about 0.5.23",
        ),
        (
            "docker run sglang:v0.5.9 sglang serve m",
            "0.5.8",
            "this is SGLang 0.5.9, but what is said here is about 0.5.8",
        ),
    ],
)
def test_a_version_that_is_not_the_one_judged_by_is_a_warning(command: str, asked: str | None, said: str) -> None:
    (warning,) = [one for one in read_launch(command, version=asked).findings if one.rule == "other-version"]
    assert (warning.severity, warning.message) == ("warning", said)


def test_options_are_those_of_the_version() -> None:
    command = "sglang serve m --cuda-graph-max-bs 8 --enable-double-sparsity --cuda-graph-max-bs-prefill 64"
    now, then = read_launch(command), read_launch(command, version="0.5.9")
    assert [one.rule for one in now.findings if one.severity == "fatal"] == ["renamed-option", "unknown-option"]
    (newer,) = [one for one in then.findings if one.severity == "fatal"]
    assert newer.message.startswith("SGLang 0.5.9 has no --cuda-graph-max-bs-prefill, which came with ")
    assert then.arguments == {"model-path": "m", "cuda-graph-max-bs-decode": 8}
    assert [one.message for one in then.findings if one.rule == "older-option"] == [
        "--cuda-graph-max-bs is an option of SGLang 0.5.9: explained as --cuda-graph-max-bs-decode 8",
        "--enable-double-sparsity is an option of SGLang 0.5.9: nothing took its place, it is left out here",
    ]


def test_the_arguments_a_script_passes_on_are_none() -> None:
    for written in ('"$@"', "$@", '\\\n  "$@"\n'):
        line = read_launch(f"python3 -m sglang.launch_server --model-path m {written}")
        assert (line.arguments, line.findings) == ({"model-path": "m"}, ())
    assert read_launch('sglang serve m --x"$@"').incomplete


def test_tokens_of_a_container_are_no_news() -> None:
    assert rules(read_launch("docker run -e HF_TOKEN -e HF_TOKEN=$HF_TOKEN img sglang serve m")) == []
    assert rules(read_launch("docker run -e NCCL_ALGO img sglang serve m")) == ["unknown-environment"]


def test_abbreviations_are_no_news() -> None:
    line = read_launch("sglang serve m --tp 8")
    assert line.arguments == {"model-path": "m", "tp-size": 8}
    assert not line.findings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # [ran] against the real parser, facts section 1
        (
            ["--pp", "2"],
            "ambiguous option: --pp could match --pp-size, --pp-max-micro-batch-size, --pp-async-batch-depth",
        ),
        (
            ["--cuda-graph-max-bs", "4"],
            "ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill",
        ),
        (["--tp-size"], "argument --tp-size/--tensor-parallel-size: expected one argument"),
        (["--cuda-graph-bs-decode"], "argument --cuda-graph-bs-decode: expected at least one argument"),
        (["--tp-size", "eight"], "argument --tp-size/--tensor-parallel-size: invalid int value: 'eight'"),
        (["--trust-remote-code=yes"], "argument --trust-remote-code: ignored explicit argument 'yes'"),
        (["--nope", "1"], "unrecognized arguments: --nope 1"),
        (
            ["--cuda-graph-backend-prefill", "tc_piecewise"],
            "tc_piecewise was removed; select breakable, full, or disabled",
        ),
        (["--cuda-graph-config", '{"warm": {}}'], "unknown phase 'warm', expected one of ('decode', 'prefill')"),
        (["--context-length", "1.5Ki"], "Decimals are not allowed with IEC suffixes"),
        (["--tp_size", "8"], "unrecognized arguments: --tp_size 8"),
        (["—tp", "8"], "unrecognized arguments: —tp 8"),
    ],
)
def test_refusals_in_the_words_of_argparse(words: list[str], message: str) -> None:
    line = read_launch([*MODEL, *words])
    assert line.refused
    assert message in line.findings[0].message
    assert line.findings[0].advice


def test_all_mistakes_at_once_the_first_one_the_engine_prints() -> None:
    line = read_launch("sglang serve --tp-sizes 8 --dp-size x --attention-backend flashinfr --cuda-graph-bs 1 2")
    assert rules(line) == ["renamed-option", "bad-value", "bad-value", "missing-model", "unknown-option"]
    advice = [finding.advice for finding in line.findings]
    assert advice[0] == "write --cuda-graph-bs-decode 1 2"
    assert advice[2] == "did you mean flashinfer?"
    assert advice[4] == "did you mean --tp-size?"
    assert not line.complete


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["--tp", "8"], {"tp-size": 8}),
        (["--mem-fraction", "0.8"], {"mem-fraction-static": 0.8}),
        (["--ep", "4", "--max-running=3"], {"ep-size": 4, "max-running-requests": 3}),
        (["--context-length", "16k", "--max-total-tokens", "1Ki"], {"context-length": 16000, "max-total-tokens": 1024}),
        (["--chunked-prefill-size", "-1"], {"chunked-prefill-size": -1}),
        (["--cuda-graph-bs-decode", "1", "2"], {"cuda-graph-bs-decode": [1, 2]}),
        (["--no-dllm-fdfo"], {"dllm-fdfo": False}),
        (["--cuda-graph-config", '{"decode": {"max_bs": 4}}'], {"cuda-graph-config": {"decode": {"max_bs": 4}}}),
        (["--lora-paths", "a=b", '{"lora_name": "n", "lora_path": "p"}'],
         {"lora-paths": ["a=b", {"lora_name": "n", "lora_path": "p"}]}),
        (["--monokernel-backend", "amd"], {"enable-amd-monokernel": True}),
    ],
)  # fmt: skip
def test_values(words: list[str], arguments: dict[str, Any]) -> None:
    line = read_launch([*MODEL, *words])
    assert line.arguments == {"model-path": "m", **arguments}
    assert not line.refused


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--cuda-graph-max-bs=64", {"cuda-graph-max-bs-decode": 64}),
        ("--disable-piecewise-cuda-graph", {"disable-prefill-cuda-graph": True}),
        ("--piecewise-cuda-graph-tokens 4 8", {"cuda-graph-bs-prefill": [4, 8]}),
        ("--enable-deepep-moe", {"moe-a2a-backend": "deepep"}),
        ("--enable-piecewise-cuda-graph", {}),
        ("--speculative-ngram-branch-length 9", {"speculative-ngram-max-trie-depth": 9}),
    ],
)
def test_options_of_older_versions_under_their_new_names(words: str, arguments: dict[str, Any]) -> None:
    line = read_launch(f"--model-path m {words}")
    assert line.arguments == {"model-path": "m", **arguments}
    assert only(line, "renamed-option").severity == "fatal"
    assert line.complete


def test_the_last_duplicate_wins_and_both_values_are_told() -> None:
    line = read_launch("--model-path m --tp-size 4 --tensor-parallel-size 8 --api-key one --api-key two")
    assert line.arguments["tp-size"] == 8
    told = " ".join(finding.message for finding in line.findings)
    assert "4, then 8" in told
    assert "one" not in told


def test_deprecated_spellings_and_gone_variables() -> None:
    line = read_launch("SGLANG_ENABLE_SPEC_V2=1 sglang serve m --disable-cuda-graph --enable-dp-attention")
    assert rules(line) == ["deprecated-option", "deprecated-option", "gone-variable"]
    assert not line.refused


def test_a_backslash_followed_by_blanks() -> None:
    line = read_launch("sglang serve m \\  \n --tp-size 8")
    assert line.arguments["tp-size"] == 8
    assert only(line, "broken-continuation").severity == "warning"


def test_the_first_of_several_launches() -> None:
    line = read_launch("sglang serve m --port 1 &\nsglang serve m --port 2 &")
    assert line.arguments["port"] == 1
    assert "1 further" in only(line, "more-launches").message


def test_a_config_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("tp-size: 4\ntrust-remote-code: true\ncuda-graph-bs-decode: [1, 2]\nport: 1\n")
    line = read_launch("sglang serve m --config c.yaml --port 2", cwd=tmp_path)
    assert line.arguments == {
        "model-path": "m", "tp-size": 4, "trust-remote-code": True, "cuda-graph-bs-decode": [1, 2], "port": 2
    }  # fmt: skip
    assert not line.findings
    assert only(read_launch("sglang serve m --config=c.yaml", cwd=tmp_path), "config-ignored")
    assert only(read_launch("sglang serve m --config d.yaml", cwd=tmp_path), "unknown-value").severity == "warning"


def test_a_text_that_is_a_config_file(tmp_path: Path) -> None:
    text = "# start: sglang serve --config c.yaml\nmodel-path: m\ntp-size: 4\ncuda-graph-bs-decode: [1]\n"
    line = read_launch(text)
    assert line.arguments == {"model-path": "m", "tp-size": 4, "cuda-graph-bs-decode": [1]}
    assert not line.findings
    (tmp_path / "c.yaml").write_text(text)
    assert read_launch("sglang serve --config c.yaml", cwd=tmp_path) == line
    assert only(read_launch("tp-size: 8"), "missing-model")
    assert "Unsupported config option 'dllm_fdfo'" in only(read_launch("dllm-fdfo: true"), "config-file").message


@pytest.mark.parametrize("text", ["name: x\nworkload: {}", "tp-size: [", "model-path: m\n" * 10_000])
def test_a_text_that_is_none(text: str) -> None:
    with pytest.raises(SpectuneError, match="is no launch of SGLang"):
        read_launch(text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.txt", "", "Config file must be YAML format"),
        ("c.yaml", "[1]", "must contain a dictionary"),
        ("c.yaml", "a: [", "c.yaml:1"),
        ("c.yaml", "dllm-fdfo: true", "Unsupported config option 'dllm_fdfo'"),
        ("c.yaml", "tp_size: 8", "unrecognized arguments: --tp_size 8"),
    ],
)
def test_a_config_file_that_sglang_refuses(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    line = read_launch(f"sglang serve m --config {name}", cwd=tmp_path)
    assert line.refused
    assert message in line.findings[0].message


@pytest.mark.parametrize(
    "command", ["", "ls -l", "python bench.py --tp-size 8", "'abc", "$(x", [], ["ls"], "\x00", "a" * 2**21]
)
def test_what_is_no_launch(command: str) -> None:
    with pytest.raises(SpectuneError) as caught:
        read_launch(command)
    assert str(caught.value).isprintable()


WORDS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="-=$'\"\\ `(){};&|<>#\n\t—sglang018", max_size=20),
    st.sampled_from(
        ["--", "-h", "--help", "sglang", "serve", "env", "docker", "-e", "bash", "-c", "--config", "--tp", "A=1"]
    ),
    st.sampled_from(sorted(OPTIONS.by_name)).map("--{}".format),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=8), st.booleans())
def test_nothing_but_our_own_error_is_ever_raised(words: list[str], joined: bool) -> None:
    command: Any = " ".join(["sglang serve", *words]) if joined else ["sglang", "serve", *words]
    for one in (command, words, " ".join(words)):
        assert all(sentence.isprintable() for sentence in said_of(one))


def said_of(command: Any) -> list[str]:
    """Everything a user would be told."""
    try:
        findings = read_launch(command).findings
    except SpectuneError as error:
        return str(error).split("\n")
    return [sentence for finding in findings for sentence in (finding.message, finding.advice)]


def values(option: Option) -> st.SearchStrategy[Any]:
    if option.nargs == 0:
        return st.just(True)
    text = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8).filter(
        lambda word: not word.startswith("-")
    )
    one: st.SearchStrategy[Any] = {
        "int": st.integers(-(10**6), 10**6),
        "human_readable_int": st.integers(0, 10**9),
        "float": st.floats(0.001, 1000),
        "loads": st.dictionaries(text, st.integers(), max_size=2),
        "json_list_type": st.lists(st.integers(), max_size=2),
    }.get(option.kind, text)
    if option.choices is not None:
        number = int if option.kind == "int" else str
        one = st.sampled_from(option.choices).map(number)
    return st.lists(one, min_size=1, max_size=3) if option.nargs in ("+", "*") else one


USUAL = [
    option
    for name, option in OPTIONS.by_name.items()
    if name == option.name and option.kind not in ("nullable_str", "parse_cuda_graph_config_arg")
    and name not in ("config", "lora-paths", "log-level", "model-path", "monokernel-backend")
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sglang serve m\0", "null bytes"),
        ("sglang serve m --tp-size " + "9" * 30, "--tp-size 9{30} is a count of nothing"),
        ("sglang serve m --cuda-graph-bs-decode 1 " + "9" * 30, "--cuda-graph-bs-decode 9{30} is a count of nothing"),
        ("sglang serve m" + " --tp 2" * 5000, "10001 words is longer"),
        ("A=(x x)\n" + "A=(${A[@]} ${A[@]})\n" * 40 + "sglang serve ${A[@]}", "array A grows beyond"),
        ("A=xxxxxxxx\n" + "A=$A$A\n" * 40 + "sglang serve $A", "grows beyond"),
        ("A=" + "x" * 300_000 + "\n" + "B=x\n" + "B+=$A\n" * 40 + "sglang serve m", "B grows beyond"),
        ("A=(" * 3000 + ")" * 3000, "is no launch"),
        ("a: &a [x]\ncommand: [" + "*a, " * 50 + "y]", "is no launch"),
        ("docker run --entrypoint sglang image serve m", "is no launch"),
    ],
)
def test_what_is_no_command_is_said_in_one_sentence(command: str, words: str) -> None:
    with pytest.raises(SpectuneError, match=words):
        read_launch(command)


@pytest.mark.parametrize(
    ("word", "advice"), [("“--tp” 2", "word processor"), ("--tp\u00a02", "word processor"), ("—tp 2", "word processor")]
)
def test_what_a_word_processor_made_is_named(word: str, advice: str) -> None:
    assert advice in only(read_launch(f"sglang serve m {word}"), "unknown-option").advice


def test_an_array_nobody_assigned_is_not_known() -> None:
    assert rules(read_launch("sglang serve m ${ARGS[@]}")) == ["unknown-words"]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_was_written_is_read_back(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(USUAL), unique_by=lambda option: option.name, max_size=6))
    arguments = {option.name: data.draw(values(option)) for option in chosen}
    words = [*MODEL]
    for name, value in arguments.items():
        several = value if isinstance(value, list) and OPTIONS.by_name[name].nargs in ("+", "*") else [value]
        shown = [one if isinstance(one, str) else json.dumps(one) for one in several]
        words += [f"--{name}", *([] if value is True else shown)]
    expected = {"model-path": "m", **arguments}
    assert read_launch(words).arguments == expected
    assert read_launch("A=1 python -m sglang.launch_server " + shlex.join(words)).arguments == expected
