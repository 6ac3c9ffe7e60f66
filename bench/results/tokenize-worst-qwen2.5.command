tokmap-bench tokenize --worst build/measure/texts/prose.txt -t vocab/qwen2.5/tokenizer.json --repeats 5
