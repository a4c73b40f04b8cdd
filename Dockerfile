# The page in a container: docker build -t questbook . ; docs/deploy.md says how it is run.
# The first stage installs into a virtual environment; everything it needs has wheels, so neither stage has a compiler.
FROM python:3.13.9-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/questbook
# What it depends on changes less often than Questbook, so it is a layer of its own.
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY questbook/__init__.py questbook/
RUN python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
    extras = project['optional-dependencies']; \
    print(*project['dependencies'], *(line for name in ('web', 'identity', 'ops', 'otel', 'postgres', 'lore', 'minilm') for line in extras[name]), sep='\n')" \
    > requirements.txt \
    && /opt/questbook/bin/pip install --no-cache-dir -c constraints.txt -r requirements.txt
COPY questbook/ questbook/
COPY notebooks/ notebooks/
COPY memory/ memory/
COPY graphs/ graphs/
RUN /opt/questbook/bin/pip install --no-cache-dir -c constraints.txt --no-deps .

FROM python:3.13.9-slim-bookworm
# A new volume at /forgotten is as this directory: whoever runs the image can write there.
RUN groupadd --gid 10001 questbook && useradd --uid 10001 --gid 10001 --home-dir /data --create-home questbook \
    && install -d -m 700 -o 10001 -g 10001 /forgotten
COPY --from=build /opt/questbook /opt/questbook
ENV PATH=/opt/questbook/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 QUESTBOOK_HOME=/data QUESTBOOK_LOG=json
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["questbook"]
CMD ["web", "--host", "0.0.0.0", "--port", "8000", "--no-browser"]
