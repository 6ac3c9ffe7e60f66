tokmap-bench tokenize build/measure/texts/prose.txt -t vocab/llama2/tokenizer.json --repeats 5 --against gigatoken --venv build/peers-venv --documents
