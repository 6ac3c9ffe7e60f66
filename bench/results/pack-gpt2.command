tokmap-bench pack build/measure/texts/prose.txt -t vocab/gpt2/tokenizer.json --text-bytes 512M --repeats 3
