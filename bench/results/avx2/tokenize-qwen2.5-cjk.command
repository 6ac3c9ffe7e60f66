tokmap-bench tokenize build/measure/texts/cjk.txt -t vocab/qwen2.5/tokenizer.json --repeats 3 --against gigatoken --venv build/peers-venv
