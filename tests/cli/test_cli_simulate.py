"""`spectune simulate --predict` and `spectune profiles`, as a script sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked import spectune

ARGV = ("--model-path", "moonshotai/Kimi-K2.5", "--tp-size", "8", "--mem-fraction-static", "0.85")
CHAIN = (
    "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "37k", "--speculative-num-steps", "2",
    "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "3",
)  # fmt: skip
LOAD = ("--concurrency", "1", "--context-tokens", "500")


def predict(*words: str, profile: str = "kimi-k2.5-pcie") -> subprocess.CompletedProcess[str]:
    return spectune("simulate", "--profile", profile, "--predict", *words)


def test_the_field_case_in_json() -> None:
    ran = predict(*LOAD, "--json", "--", *ARGV, *CHAIN)
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["accept_length"] == pytest.approx(2.0, rel=0.01)
    assert answer["cycle_ms"] == pytest.approx(33.3, rel=0.01)
    assert answer["decode_speed"] == answer["output_throughput"] == pytest.approx(60.0, rel=0.01)
    assert answer["fails"] is None
    assert answer["simulated"] is True


def test_a_whole_command_may_be_given() -> None:
    ran = predict(*LOAD, "--", "python", "-m", "sglang.launch_server", *ARGV, *CHAIN)
    assert ran.returncode == 0, ran.stderr
    assert "simulated on kimi-k2.5-pcie: EAGLE3 2/1/3" in ran.stdout
    assert "cycle_ms           33.28" in ran.stdout


def test_both_speeds_have_names() -> None:
    load = ("--concurrency", "8", "--context-tokens", "500", "--output-tokens", "256")
    ran = predict(*load, "--", *ARGV, *CHAIN)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    alone = lines.index("a cycle, no prefill in between:")
    (under,) = [at for at, line in enumerate(lines) if line.startswith("as a search would measure it, with the pref")]
    assert lines[under].endswith("(prompts of 372 tokens, answers of 256):")
    speeds = [float(lines[at + 2].split()[1]) for at in (alone, under)]
    answer = json.loads(predict(*load, "--json", "--", *ARGV, *CHAIN).stdout)
    assert speeds == pytest.approx([answer["decode_speed"], answer["under_load"]["decode_speed"]], abs=0.05)
    assert speeds[1] < speeds[0]


def test_without_a_profile_the_default_answers() -> None:
    ran = spectune("simulate", "--predict", *LOAD, "--", *ARGV)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("simulated on kimi-k2.5-pcie: no speculation")


def test_where_a_launch_would_fail() -> None:
    argv = [word if word != "0.85" else "0.5" for word in ARGV]
    answer = json.loads(predict(*LOAD, "--json", "--", *argv).stdout)
    assert answer["fails"] == {"at": "startup", "kind": "oom"}
    assert answer["decode_speed"] is answer["output_throughput"] is answer["cycle_ms"] is None
    ran = predict(*LOAD, "--", *argv)
    assert ran.returncode == 1
    (line,) = ran.stdout.splitlines()
    assert line == (
        "simulated on kimi-k2.5-pcie: the launch fails at startup, oom: the weights take 74.4 GB of each GPU, but "
        "mem-fraction-static 0.5 × 96 GB leaves 48.0 GB for weights and KV cache"
    )


def test_graphs_that_do_not_fit() -> None:
    words = ["0.97" if word == "0.85" else word for word in ARGV]
    answer = json.loads(predict(*LOAD, "--json", "--", *words).stdout)
    assert answer["fails"] == {"at": "capture", "kind": "oom"}
    assert "(1 − mem-fraction-static 0.97) × 96 GB − 2 GB in reserve leaves 0.9 GB" in answer["reason"]


def test_a_fault_of_the_profile_is_told_before_the_figures(tmp_path: Path) -> None:
    shipped = json.loads(spectune("profiles", "--json").stdout)[0]["file"]
    profile = tmp_path / "p.yaml"
    text = Path(shipped).read_text("utf-8")
    profile.write_text(text + "faults:\n  - {when: {}, at: bench, kind: hang}\n", encoding="utf-8")
    first, second, *figures = predict(*LOAD, "--", *ARGV, profile=str(profile)).stdout.splitlines()
    assert first.endswith("the launch fails at bench, hang: a fault of the profile")
    assert second == "without this fault it would give:"
    assert any(line.startswith("decode_speed       82.") for line in figures)


def test_requests_that_do_not_fit_the_cache_are_not_predicted() -> None:
    ran = predict("--concurrency", "1", "--context-tokens", "1000000", "--", *ARGV)
    assert ran.returncode == 2
    assert "a request of 1000000 tokens cannot run: the KV cache of this launch holds 103214" in ran.stderr
    assert ran.stdout == ""


def test_why_fewer_requests_run_is_told() -> None:
    load = ("--concurrency", "64", "--context-tokens", "100000")
    assert "1 of 64 requests running (the KV cache holds" in predict(*load, "--", *ARGV).stdout
    words = ("--concurrency", "64", "--context-tokens", "10", "--", *ARGV, "--max-running-requests")
    assert "4 of 64 requests running (max-running-requests is 4)" in predict(*words, "4").stdout
    assert "1 of 64 requests running (max-running-requests is 1)" in predict(*words, "0").stdout  # as SGLang takes it


def test_figures_of_all_gpus_are_called_so() -> None:
    ran = predict(*LOAD, "--", *ARGV, "--tp-size", "2")
    assert "the launch asks for 2 GPUs, but memory and speed are those of all 8 GPUs of the profile" in ran.stderr
    assert "GPU" not in predict(*LOAD, "--", *ARGV).stderr


def test_what_sglang_s_resolver_refuses_is_a_failure_of_the_launch() -> None:
    words = ("--", *ARGV, "--speculative-algorithm", "FOO")
    answer = json.loads(predict(*LOAD, "--json", *words).stdout)
    assert answer["fails"] == {"at": "startup", "kind": "unsupported"}
    assert answer["decode_speed"] is None
    assert "Unknown speculative algorithm name: FOO" in answer["reason"]
    assert "Unknown speculative algorithm name: FOO" in predict(*LOAD, *words).stdout


def test_an_exception_without_words_is_told_with_the_way_out() -> None:
    drafting = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "37k")
    ran = predict(*LOAD, "--", *ARGV, *drafting, "--speculative-num-steps", "3")
    assert ran.returncode == 1
    assert ran.stdout == (
        "simulated: the launch fails at startup, unsupported: SGLang ends it with TypeError: '>' not supported between "
        "instances of 'NoneType' and 'int'; way out: pass speculative-eagle-topk with speculative-num-steps\n"
    )


def test_what_dies_after_the_start_is_a_failure_too() -> None:
    words = [word if word != "1" else "4" for word in CHAIN]
    answer = json.loads(predict(*LOAD, "--json", "--", *ARGV, *words, "--speculative-num-draft-tokens", "60").stdout)
    assert answer["fails"] == {"at": "load", "kind": "unsupported"}
    answer = json.loads(predict(*LOAD, "--json", "--", *ARGV, "--tp-size", "16").stdout)
    assert answer["fails"] == {"at": "startup", "kind": "crash"}
    assert answer["reason"] == "the profile has 8 GPUs, but the launch asks for 16"
    answer = json.loads(predict(*LOAD, "--json", "--", *ARGV, "--port", "99999").stdout)
    assert answer["fails"] == {"at": "ready", "kind": "crash"}
    answer = json.loads(predict(*LOAD, "--json", "--", *ARGV, "--tp-size", "0").stdout)
    assert answer["fails"] == {"at": "startup", "kind": "unsupported"}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--port", "99999"), "OverflowError: bind(): port must be 0-65535."),
        (("--tp-size", "0"), "IndexError: list index out of range"),
        (("--tp-size", "-1"), "IndexError: list index out of range"),
    ],
)
def test_a_launch_that_cannot_live_ends_as_sglang_s(words: tuple[str, ...], error: str) -> None:
    ran = spectune("simulate", "--profile", "kimi-k2.5-pcie", "--time-scale", "0.001", "--", *ARGV, *words)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == error
    assert ran.stderr.count("Traceback") == 1  # SGLang's own words


def test_unknown_names_are_warned_about() -> None:
    words = [word if word != "37k" else "org/new" for word in CHAIN]
    ran = predict(*LOAD, "--prompt-class", "poetry", "--", *ARGV, *words)
    assert ran.returncode == 0
    assert "does not know the drafter 'org/new'" in ran.stderr
    assert "does not know the prompt class 'poetry'" in ran.stderr
    named = predict(*LOAD, "--", *ARGV, *words, profile="llama-3.3-70b-nvlink")
    assert "describes one drafter and names none: 'org/new' accepts what that one does" in named.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--", *ARGV), "--predict needs --concurrency and --context-tokens"),
        ((*LOAD, "--", *ARGV, "--speculative-foo", "1"), "SGLang would refuse this command: unrecognized arguments"),
        ((*LOAD, "--"), "required: --model-path"),
    ],
)
def test_bad_input_is_2_and_one_message(words: tuple[str, ...], message: str) -> None:
    ran = predict(*words)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_unknown_profile_is_told_before_what_else_is_missing() -> None:
    ran = predict("--", *ARGV, profile="kimi")
    assert ran.returncode == 2
    assert "kimi" in ran.stderr
    assert "--concurrency" not in ran.stderr


def test_help_says_what_predict_needs() -> None:
    text = "".join(spectune("simulate", "--help").stdout.split())  # lines are broken at hyphens too
    assert "needs--concurrencyand--context-tokens" in text


def test_help_of_commands_is_not_cut() -> None:
    lines = spectune("--help", COLUMNS="80").stdout.partition("Commands:")[2].strip().splitlines()
    assert len(lines) > 10
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_bad_surroundings_are_2(tmp_path: Path) -> None:
    profile = tmp_path / "p.yaml"
    profile.write_text("schema: 1\nname: x\nseeed: 3\n")
    ran = predict(*LOAD, "--", *ARGV, profile=str(profile))
    assert ran.returncode == 2
    assert f"{profile}:3: unknown key 'seeed'; did you mean 'seed'?" in ran.stderr
    ran = spectune("simulate", "--profile", "kimi-k2.5-pcie", "--time-scale", "0", "--", *ARGV)
    assert ran.returncode == 2
    assert "the time scale must be a number above 0, but got '0.0'" in ran.stderr
    env = {"SPECTUNE_SIM_LAUNCH": "first"}
    ran = spectune("simulate", "--profile", "kimi-k2.5-pcie", "--predict", *LOAD, "--", *ARGV, **env)
    assert ran.returncode == 2
    assert "SPECTUNE_SIM_LAUNCH must be a whole number of at least 0, but got 'first'" in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tp-size", "8"), "the following arguments are required: --model-path/--model"),
        ((*ARGV, "--tp-sizes", "8"), "unrecognized arguments: --tp-sizes 8"),
    ],
)
def test_a_server_of_wrong_arguments_is_refused_in_a_line(words: tuple[str, ...], said: str) -> None:
    ran = spectune("simulate", "--", *words)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"spectune: SGLang would refuse this command: {said}")


def test_the_profiles_say_where_their_numbers_come_from() -> None:
    listed = json.loads(spectune("profiles", "--json").stdout)
    assert {"kimi-k2.5-pcie", "kimi-k2.5-pcie-first-boot", "llama-3.3-70b-nvlink", "qwen3-next-80b-a3b"} == {
        one["name"] for one in listed
    }
    text = spectune("profiles").stdout
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["profile", *sorted(one["name"] for one in listed)]
    assert lines[1].split() == ["kimi-k2.5-pcie", "8", "96", "GB"]
    assert "Reported by the team" in text
    assert "kimi-k2.5-pcie (the default): " in text
    assert [one["name"] for one in listed if one["default"]] == ["kimi-k2.5-pcie"]
    for one in listed:
        assert Path(one["file"]).is_file()
        assert one["file"] in lines
    assert "docs/profiles.md" in lines[-1]


def test_the_program_takes_sglang_s_arguments() -> None:
    command = [sys.executable, "-m", "spectune.engines.simulated"]
    env = {**os.environ, "SPECTUNE_SIM_PROFILE": "kimi-k2.5-pcie"}
    ran = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 0
    assert ran.stdout.startswith("usage: sglang serve")
    ran = subprocess.run([*command, "--tp-size", "8"], capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 2
    assert "sglang serve: error: the following arguments are required: --model-path" in ran.stderr
    env.pop("SPECTUNE_SIM_PROFILE")
    ran = subprocess.run([*command, *ARGV], capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 2
    assert "SPECTUNE_SIM_PROFILE must name a profile" in ran.stderr
