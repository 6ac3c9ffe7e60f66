tokmap-bench tokenize --worst build/measure/texts/prose.txt -t vocab/openai/o200k_base.tiktoken --repeats 5
