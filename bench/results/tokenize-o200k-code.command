tokmap-bench tokenize build/measure/texts/code.txt -t vocab/openai/o200k_base.tiktoken --repeats 5 --against gigatoken --venv build/peers-venv
