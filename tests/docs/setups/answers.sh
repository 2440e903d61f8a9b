for n in $(seq 20); do
  echo "{\"query\": \"Where is lab $n?\", \"answer\": \"Lab $n is in Oslo.\", \"contexts\": [\"Lab $n is in Oslo.\"]}"
done > answers.jsonl
