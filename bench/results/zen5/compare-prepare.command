tokmap-bench compare prepare -t vocab/gpt2/tokenizer.json --venv build/peers-venv --repeats 3 --seconds 60
