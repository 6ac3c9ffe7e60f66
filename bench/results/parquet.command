tokmap-bench parquet build/measure/texts/prose.txt
