"""What SGLang itself reads in the files it is given: its argument parser, and its loader of tables of steps."""

import json
import subprocess

import pytest
from export_samples import ARGV, SPECULATIVE, record
from study_samples import steps_study

from spectune.export import Format, Origin, adaptive_table, export_candidates
from spectune.export.config_file import NOT_IN_CONFIG
from spectune.export.launch import Launch
from spectune.search import weigh

ORIGIN = Origin("study", "SGLang 0.5.23", simulated=False)
READ = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs, prepare_server_args
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger
asked = json.loads(sys.argv[1])
both = [prepare_server_args(words) for words in asked["commands"]]
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
table = AdaptiveSpeculativeParams(initial_steps=asked["steps"], cfg_path=asked["table"])
print(json.dumps({
    "fields": [{name: repr(getattr(args, name)) for name in args.__struct_fields__} for args in both],
    "refused": sorted(ConfigArgumentMerger(parser).unsupported_actions),
    "candidate_steps": table.candidate_steps,
    "steps": {size: table.get_steps_for_batch(size) for size in asked["sizes"]},
}))
"""


@pytest.mark.engine
def test_sglang_reads_the_files_as_they_are_meant(cpu_runtime, tmp_path):
    argv = (*ARGV[:3], "--model-path", str(tmp_path), "--device", "cpu", *ARGV[5:], "--mem-fraction-static", "0.1",
            "--speculative-draft-model-path", "it's $(here): #1", "--speculative-eagle-topk", "1",
            "--speculative-num-draft-tokens", "4", "--cuda-graph-config", '{"decode": {"bs": [1, 2]}}')  # fmt: skip
    pick = record(values=SPECULATIVE, argv=argv)
    space, records = steps_study({3: (120.0, 60.0, 30.0), 1: (115.0, 70.0, 35.0), 0: (100.0, 50.0, 40.0)})
    table = adaptive_table(records[0].candidate, weigh(records, space), space, "0.5.23")
    (files,) = export_candidates(
        [pick], tmp_path / "export", ORIGIN, formats=tuple(Format), tables={pick.candidate.candidate_id: table}
    )
    plain = [word for option in Launch.of(pick.command).options for word in option.words]
    asked = {
        "commands": [["--config", str(files.config)], [*plain, "--host", "127.0.0.1", "--port", "30000"]],
        "table": str(files.files[Format.ADAPTIVE]),
        "steps": 3,
        "sizes": [1, 7, 8, 31, 32, 500],
    }
    answer = subprocess.run(
        [cpu_runtime.python, "-c", READ, json.dumps(asked)],
        check=False,
        env=cpu_runtime.env,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout.splitlines()[-1])
    assert told["fields"][0] == told["fields"][1]
    assert told["fields"][0]["speculative_num_steps"] == "3"
    assert {name.replace("_", "-") for name in told["refused"]} == NOT_IN_CONFIG
    assert told["candidate_steps"] == [0, 1, 3]
    assert told["steps"] == {"1": 3, "7": 3, "8": 1, "31": 1, "32": 0, "500": 0}
