pool = [{"id": f"faq-{n}", "text": f"Passage {n}.", "score": 1 / (n + 1)} for n in range(9)]
best, text = pool[:5], "Passage 0."
