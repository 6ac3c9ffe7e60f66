tokmap-bench verify build/measure/tokmap-measure-prose
