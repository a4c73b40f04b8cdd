WITH asked AS MATERIALIZED (
    SELECT array_agg(quote_literal(lexeme)::tsquery) AS lexemes,
        string_agg(quote_literal(lexeme), ' | ')::tsquery AS query
    FROM unnest(tsvector_to_array(to_tsvector('english', %s))) AS lexeme
), allowed AS MATERIALIZED (
    SELECT store.prefix, store.key, store.created_at, store.size, store.often,
        1 - min(nullif(vectors.embedding <=> %s::float8[]::vector, 'NaN')) AS cosine
    FROM (  -- how often an item has each lexeme, n: ts_rank of one is 6/pi^2 times the sum of 1/j^2 for j up to n
        SELECT prefix, key, created_at, greatest(size, 1)::float AS size, CASE WHEN words @@ query THEN ARRAY(
            SELECT round(1 / (pi() ^ 2 / 6 - 1.64493406685 * ts_rank('{{1, 1, 1, 1}}', words, lexeme)) - 0.5)
            FROM unnest(lexemes) AS lexeme
        ) END AS often FROM asked, store WHERE {where}
    ) AS store JOIN store_vectors AS vectors ON vectors.prefix = store.prefix AND vectors.key = store.key
    GROUP BY store.prefix, store.key, store.created_at, store.size, store.often
), total AS MATERIALIZED (SELECT count(*)::float AS items, greatest(avg(size), 1) AS average FROM allowed
), rarity AS MATERIALIZED (
    SELECT array_agg(ln(1 + (items - texts + 0.5) / (texts + 0.5)) ORDER BY number) AS rarities
    FROM total, (
        SELECT number, count(*) FILTER (WHERE count > 0)::float AS texts
        FROM allowed, unnest(often) WITH ORDINALITY AS each (count, number) GROUP BY number
    ) AS having_it
), item AS (
    SELECT prefix, key, cosine, created_at, CASE WHEN often IS NOT NULL THEN (
        SELECT sum(rarity * count * {k1} / (count + {k} * ({rest} + {b} * size / average)))
        FROM unnest(often, rarities) AS each (count, rarity)
    ) END AS score FROM allowed, total, rarity
), ranked AS (
    SELECT prefix, key, cosine, created_at,
        {dense} * coalesce(cosine / nullif(greatest(max(cosine) OVER (), 0), 0), 0)
        + coalesce(score / nullif(max(score) OVER (), 0), 0) AS both_scores
    FROM item ORDER BY both_scores DESC, created_at, key LIMIT %s OFFSET %s
)
SELECT store.prefix, store.key, store.value, store.created_at, store.updated_at, ranked.cosine AS score
FROM ranked JOIN store ON store.prefix = ranked.prefix AND store.key = ranked.key
ORDER BY ranked.both_scores DESC, ranked.created_at, ranked.key
