tokmap-bench tokenize build/measure/texts/mixed.txt -t vocab/llama2/tokenizer.json --repeats 5 --against gigatoken --venv build/peers-venv --documents
