tokmap-bench loader --cold build/measure/tokmap-measure-1g
